//! When a stream of events may be asked for again. A server that breaks its streams off as soon as
//! it has begun them would be asked as fast as it answers, for ever: what takes a stream up again
//! asks at once, or when the server says.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::mcp::backoff::Backoff;

/// Before a stream is taken up again in its middle. It may be of a call, which waits.
const RESUME: Duration = Duration::from_secs(1);

/// The streams of one connection.
#[derive(Debug, Default)]
pub(crate) struct Streams(Mutex<Asked>);

#[derive(Debug, Default)]
struct Asked {
    /// Of the last that was asked for.
    session: Option<Arc<str>>,
    since: Option<Instant>,
    backoff: Backoff,
}

impl Streams {
    /// The wait before the next, which goes on after an event or begins anew.
    pub(crate) fn wait(&self, session: Option<&Arc<str>>, resumes: bool) -> Duration {
        if resumes {
            return RESUME;
        }
        let mut asked = self.0.lock();
        let before = asked.since.replace(Instant::now());
        if asked.session.as_ref() != session {
            *asked = Asked {
                session: session.cloned(),
                since: asked.since,
                backoff: Backoff::default(),
            };
            return Duration::ZERO;
        }
        match before {
            Some(before) => {
                asked.backoff.lived(before);
                asked.backoff.next()
            }
            None => Duration::ZERO,
        }
    }
}
