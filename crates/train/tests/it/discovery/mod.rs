mod ranks;
mod rounds;
