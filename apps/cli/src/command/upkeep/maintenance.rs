//! `turnwire compact` and `turnwire retention confirm`: upkeep of a data folder by its operator.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use turnwire_event::Clock as _;
use turnwire_log::sqlite::{DATABASE_FILE, SqliteStore};
use turnwire_serve::app;
use turnwire_session::SystemClock;

use crate::args::{CompactArgs, ConfirmArgs};
use crate::command::settings;
use crate::terminal::output::print;

/// Rewrites the database of a stopped server, and prints its sizes.
pub(crate) fn compact(args: &CompactArgs) -> Result<()> {
    let home = settings::home(args.home.clone())?;
    check_space(&home)?;
    let size =
        SqliteStore::compact(&home).with_context(|| format!("compacting {}", home.display()))?;
    print(&format!(
        "{}: {} bytes before, {} after\n",
        home.join(DATABASE_FILE).display(),
        size.bytes_before,
        size.bytes_after
    ));
    Ok(())
}

/// Fails if a second file of the database's size does not fit.
fn check_space(home: &Path) -> Result<()> {
    let path = home.join(DATABASE_FILE);
    let bytes = std::fs::metadata(&path)
        .with_context(|| format!("there is no database at {}", path.display()))?
        .len();
    let disk = rustix::fs::statvfs(home)?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    ensure!(
        free > bytes,
        "{} needs {bytes} free bytes for the new file, the disk has {free}; free some space first",
        home.display()
    );
    Ok(())
}

/// Writes a confirmation of the current time for the server.
pub(crate) fn confirm(args: &ConfirmArgs) -> Result<()> {
    let home = settings::home(args.home.clone())?;
    let path = home.join(DATABASE_FILE);
    ensure!(path.exists(), "there is no database at {}", path.display());
    let now = SystemClock.now();
    app::write_confirmation(&home, now)
        .with_context(|| format!("writing to {}", home.display()))?;
    print(&format!(
        "confirmed that it is {now}; the server of {} removes what has expired by then\n",
        home.display()
    ));
    Ok(())
}
