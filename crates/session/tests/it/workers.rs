//! Worker sessions: their turns, their end, their deletion.

mod delete;
mod end;
mod delegation;
mod created;
mod agreeing;
