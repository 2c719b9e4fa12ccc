//! Guarded outbound HTTP.
