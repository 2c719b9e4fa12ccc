//! Regression cases: what was said in a recorded session, what is expected of it, and how a run
//! differs from that.

pub(crate) mod test_case;
pub(crate) mod observed;
pub(crate) mod difference;
