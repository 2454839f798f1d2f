//! Anchorhood as a library: everything the command-line program uses, under one name.
