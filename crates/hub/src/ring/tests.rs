//! Rings read by many cursors at once.
