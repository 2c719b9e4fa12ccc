//! Checks of this machine: settings, folder, disk, database and clock.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{Access, access, statvfs};
use turnwire_event::{Clock as _, Timestamp};
use turnwire_log::Maintenance as _;
use turnwire_log::sqlite::{DATABASE_FILE, SqliteStore};
use turnwire_serve::config::ServerConfig;
use turnwire_serve::config::store::DurabilitySetting;
use turnwire_session::SystemClock;

use super::check::CheckResult;

/// Free space below which a warning is due, in multiples of the reserve: some minutes of a full load.
const RESERVES_FREE_MIN: u64 = 8;
/// How long the two clocks are compared, and by how much they may differ.
const CLOCKS_COMPARED: Duration = Duration::from_millis(200);
const CLOCKS_DIFFER_MAX: Duration = Duration::from_millis(50);
/// How far ahead of the last trusted time the clock may be before the retention waits for a word.
const AHEAD_MAX_MS: i64 = 24 * 3_600_000;
/// 2025-01-01 and 2100-01-01: a clock outside is not set.
const TIMES: (i64, i64) = (1_735_689_600_000, 4_102_444_800_000);

/// The nearest folder that exists, for checks of a folder that a start will create.
fn existing(home: &Path) -> &Path {
    let mut ancestors = home.ancestors().filter(|path| !path.as_os_str().is_empty());
    ancestors
        .find(|path| path.exists())
        .unwrap_or(Path::new("."))
}

/// Settings that are allowed and have a risk.
pub(super) fn settings(config: &ServerConfig) -> Vec<CheckResult> {
    let name = "settings";
    let mut checks = Vec::new();
    if config.store.durability == DurabilitySetting::Relaxed {
        let found =
            "store.durability is relaxed: a power loss may lose events that clients have seen";
        checks.push(CheckResult::warning(
            name,
            found,
            "set it to full unless that is acceptable",
        ));
    }
    if config.store.reserve_bytes == 0 {
        let found = "store.reserve_bytes is 0: running turns cannot end on a full disk";
        checks.push(CheckResult::warning(name, found, "set it to 16777216"));
    }
    if config.model.record.is_some() {
        let found = "model.record is set: everything that providers stream is written to a file";
        checks.push(CheckResult::warning(
            name,
            found,
            "remove it when the recording is done",
        ));
    }
    if config.log.filter.contains("rmcp") {
        let found = "log.filter lists rmcp, which quotes whole messages of tool servers";
        checks.push(CheckResult::warning(
            name,
            found,
            "remove it when you have found the cause",
        ));
    }
    if config.listen.drain_ms > 25_000 {
        let drain = config.listen.drain_ms;
        let found = format!("listen.drain_ms is {drain}: most supervisors kill after 30 s");
        let action = "let the supervisor wait for longer than that, with TimeoutStopSec or terminationGracePeriodSeconds";
        checks.push(CheckResult::warning(name, found, action));
    }
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let wanted = config.http.connections_max as u64 + 256;
    if let Some(files) = files.filter(|files| *files < wanted) {
        let found = format!(
            "http.connections_max is {}, but this process may open {files} files: the server lowers it",
            config.http.connections_max
        );
        checks.push(CheckResult::warning(
            name,
            found,
            format!("raise the limit (ulimit -n, LimitNOFILE) to {wanted}"),
        ));
    }
    if checks.is_empty() {
        checks.push(CheckResult::ok(name, "valid, none of them is risky"));
    }
    checks
}

/// The data folder: its owner, its mode, and what should not be in it.
pub(super) fn folder(config: &ServerConfig) -> Vec<CheckResult> {
    let (name, home) = ("folder", &config.home);
    let path = home.display();
    let Ok(about) = fs::metadata(home) else {
        let parent = existing(home);
        return vec![match access(parent, Access::WRITE_OK | Access::EXEC_OK) {
            Ok(()) => CheckResult::ok(name, format!("{path} is not there; a start creates it")),
            Err(_) => CheckResult::problem(
                name,
                format!(
                    "{path} is not there, and {} cannot be written",
                    parent.display()
                ),
                "create it for the server's user, or name another with --home",
            ),
        }];
    };
    if !about.is_dir() {
        return vec![CheckResult::problem(
            name,
            format!("{path} is not a folder"),
            "name another with --home",
        )];
    }
    let mut checks = Vec::new();
    if access(home, Access::WRITE_OK | Access::EXEC_OK | Access::READ_OK).is_err() {
        let action = "run as its owner, or give it to the server's user with chown -R";
        checks.push(CheckResult::problem(
            name,
            format!("{path} cannot be written"),
            action,
        ));
    }
    let user = rustix::process::geteuid().as_raw();
    if about.uid() != user {
        let found = format!("{path} belongs to the user {}, this is {user}", about.uid());
        checks.push(CheckResult::warning(
            name,
            found,
            "run as the server's user",
        ));
    }
    let mode = about.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        let found = format!("{path} has mode {mode:o}: others can enter it");
        checks.push(CheckResult::warning(
            name,
            found,
            format!("chmod 700 {path}"),
        ));
    }
    let draft = home.join(format!("{DATABASE_FILE}.restore"));
    if draft.exists() {
        let action = "run turnwire restore again";
        checks.push(CheckResult::problem(
            name,
            "a restore was interrupted",
            action,
        ));
    }
    let entries = fs::read_dir(home).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let kept =
        |name: &String| name.starts_with("before-restore-") || name.ends_with("-wal.damaged");
    let kept: Vec<String> = names.filter(kept).collect();
    if !kept.is_empty() {
        let found = format!("{} has content of deleted sessions too", kept.join(", "));
        checks.push(CheckResult::warning(
            name,
            found,
            "remove it when you no longer need it",
        ));
    }
    if checks.is_empty() {
        checks.push(CheckResult::ok(
            name,
            format!("{path} is private and can be written"),
        ));
    }
    checks
}

/// Free space beside the reserve.
pub(super) fn disk(config: &ServerConfig) -> CheckResult {
    let name = "disk";
    let disk = match statvfs(existing(&config.home)) {
        Ok(disk) => disk,
        Err(error) => {
            return CheckResult::problem(
                name,
                format!("cannot be read: {error}"),
                "check the mount",
            );
        }
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let reserve = config.store.reserve_bytes;
    let found = format!(
        "{} MiB are free, the reserve takes {} MiB",
        free >> 20,
        reserve >> 20
    );
    let action = "free some space; a full disk refuses new turns";
    // The reserve of a folder in use is taken already.
    let is_taken = config.home.join("reserve").exists();
    if !is_taken && free < reserve {
        CheckResult::problem(name, found, action)
    } else if free < reserve.max(16 << 20).saturating_mul(RESERVES_FREE_MIN) {
        CheckResult::warning(name, found, action)
    } else {
        CheckResult::ok(name, found)
    }
}

/// The version of this program and of the database.
pub(super) fn database(config: &ServerConfig) -> Vec<CheckResult> {
    let name = "version";
    let version = env!("CARGO_PKG_VERSION");
    if !config.home.join(DATABASE_FILE).exists() {
        return vec![CheckResult::ok(
            name,
            format!("turnwire {version}; no database yet"),
        )];
    }
    match SqliteStore::schema(&config.home) {
        Ok((found, own)) if found == own => {
            vec![CheckResult::ok(
                name,
                format!("turnwire {version}; the database has its schema, {own}"),
            )]
        }
        Ok((found, own)) => vec![CheckResult::warning(
            name,
            format!(
                "turnwire {version} has schema {own}, the database {found}: a start migrates it"
            ),
            "back it up first; an older release cannot read it afterwards",
        )],
        Err(error) => vec![CheckResult::problem(
            name,
            format!("turnwire {version}: {error}"),
            "see docs/operations.md, \"A damaged database\"",
        )],
    }
}

/// The clock: its year, its speed, and the time of the last event.
pub(super) fn clock(config: &ServerConfig) -> Vec<CheckResult> {
    let name = "clock";
    let set = "set the clock, and keep it with NTP";
    let (wall, monotonic) = (SystemClock.now(), Instant::now());
    std::thread::sleep(CLOCKS_COMPARED);
    let passed = SystemClock.now().as_millis() - wall.as_millis();
    let measured = monotonic.elapsed().as_millis() as i64;
    let mut checks = Vec::new();
    if !(TIMES.0..TIMES.1).contains(&wall.as_millis()) {
        checks.push(CheckResult::problem(name, format!("it says {wall}"), set));
    }
    if (passed - measured).abs() > CLOCKS_DIFFER_MAX.as_millis() as i64 {
        let found = format!("it went {passed} ms in {measured} ms: it is being set");
        checks.push(CheckResult::warning(
            name,
            found,
            "wait until NTP has set it",
        ));
    }
    let store = SqliteStore::open_read_only(&config.home).ok();
    let newest: Option<Timestamp> = store
        .as_ref()
        .and_then(|store| store.newest_event_time().ok()?);
    if let Some(newest) = newest.filter(|newest| newest.as_millis() > wall.as_millis() + 1_000) {
        let found = format!("it says {wall}, before the last event of {newest}");
        checks.push(CheckResult::problem(name, found, set));
    }
    let mark = store.and_then(|store| store.clock_mark().ok()?);
    if let Some(mark) =
        mark.filter(|mark| wall.as_millis() - mark.trusted.as_millis() > AHEAD_MAX_MS)
    {
        let found = format!(
            "it is more than a day ahead of the last trusted time, {}",
            mark.trusted
        );
        let action =
            "normal after the server was off; the retention waits for `turnwire retention confirm`";
        checks.push(CheckResult::warning(name, found, action));
    }
    if checks.is_empty() {
        checks.push(CheckResult::ok(name, format!("it says {wall}")));
    }
    checks
}
