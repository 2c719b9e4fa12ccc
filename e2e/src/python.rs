//! The Python environment that some tests drive: `e2e/python/requirements.txt` in `target/python`.

use std::path::PathBuf;

use turnwire_testkit::environment;
pub use turnwire_testkit::environment::text;

/// The programs of the environment, which is made if it is not there or is out of date.
pub fn programs() -> PathBuf {
    environment::python("python").join("bin")
}
