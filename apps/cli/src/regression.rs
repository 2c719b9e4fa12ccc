//! Regression cases: the input and expected results of a recorded session, and the differences of a
//! new run.

pub(crate) mod test_case;
pub(crate) mod observed;
pub(crate) mod difference;
