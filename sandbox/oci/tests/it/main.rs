//! Archives of images, real and hostile.

mod hostile;
mod images;
mod make;
mod tools;
