//! Pack files in, checked values out.
