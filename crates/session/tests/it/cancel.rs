//! Cancels: early, of each part, at the seam, and of what outlives a future.

mod early;
mod parts;
mod seam;
mod wards;
