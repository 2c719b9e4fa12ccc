//! Folders of sessions go with their sessions: when one is deleted, and at the start those of
//! sessions that were deleted just before a crash.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::Handle;
use turnwire_event::SessionId;
use turnwire_log::SessionRecords;
use turnwire_session::{SessionService, WeakSessionService};
use turnwire_tool::runner::ProgramFolders;

/// Beyond the grace of programs, until none of a deleted session can write any more.
const AFTER: Duration = Duration::from_secs(3);
/// Folders looked at between two pauses, so that a full disk of them holds nobody up.
const PIECE: usize = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// Takes the folder of every session away that is deleted from now on. Programs of it have
/// `grace` to end, and may write meanwhile: so it is done once more after that.
pub(crate) fn follow(sessions: &SessionService, folders: ProgramFolders, grace: Duration) {
    let runtime = Handle::current();
    sessions.on_deleted(Arc::new(move |id| {
        let folders = folders.clone();
        runtime.spawn(async move {
            clear(&folders, id).await;
            tokio::time::sleep(grace + AFTER).await;
            clear(&folders, id).await;
        });
    }));
}

async fn clear(folders: &ProgramFolders, id: SessionId) {
    let folders = folders.clone();
    let cleared = tokio::task::spawn_blocking(move || folders.remove(id)).await;
    if let Ok(Err(error)) = cleared {
        // The next start tries again.
        tracing::warn!(session = %id, ?error, "the folder of a deleted session is still there");
    }
}

/// Takes folders away whose sessions the store does not have, on a thread of its own that ends
/// with `sessions`. A session is in the store before a program of it has a folder.
pub(crate) fn sweep(
    sessions: &SessionService,
    store: Arc<dyn SessionRecords>,
    folders: ProgramFolders,
) {
    let service = sessions.downgrade();
    let swept = thread::Builder::new()
        .name("folders".to_owned())
        .spawn(move || swept(&service, store.as_ref(), &folders));
    if let Err(error) = swept {
        tracing::warn!(?error, "folders of deleted sessions are not looked for");
    }
}

fn swept(service: &WeakSessionService, store: &dyn SessionRecords, folders: &ProgramFolders) {
    for (at, id) in folders.sessions().enumerate() {
        if at % PIECE == PIECE - 1 {
            thread::sleep(PAUSE);
        }
        if !service.is_alive() {
            return;
        }
        if matches!(store.session(id), Ok(None))
            && let Err(error) = folders.remove(id)
        {
            tracing::warn!(session = %id, ?error, "a folder of no session is still there");
        }
    }
}
