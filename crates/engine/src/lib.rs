//! How does a graph of layers run, forwards and backwards, on this device?
