//! Archives of images, real and hostile.

mod attacks;
mod hostile;
mod images;
mod make;
mod tools;
