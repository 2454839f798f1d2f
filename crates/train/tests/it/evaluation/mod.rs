mod knn;
mod linear;
