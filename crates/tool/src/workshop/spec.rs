//! One program as a tool wants it run.

use std::path::PathBuf;

use crate::guard::order::Limits;

/// One program to run.
#[derive(Clone)]
pub struct Spec {
    /// The program, by name or absolute path.
    pub program: String,
    /// Its arguments, as they are: there is no shell.
    pub args: Vec<String>,
    /// Its environment beside `PATH`, `HOME`, `TMPDIR` and `LANG`; may hold secrets.
    pub env: Vec<(String, String)>,
    /// The folder it works in, which is its home too.
    pub dir: PathBuf,
    /// What it may use.
    pub limits: Limits,
    /// What it reads, in a call; its standard input is empty if there is none.
    pub input: Option<String>,
    /// What it may write, in a call; beyond it the program is ended.
    pub output_bytes_max: usize,
}

impl std::fmt::Debug for Spec {
    /// Without values of variables and input, which may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spec")
            .field("program", &self.program)
            .field("dir", &self.dir)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
