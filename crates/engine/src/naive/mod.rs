//! The specification: each operation as plain loops, the oracle of the tests.
