//! How does one walk through pictures in a browser?
