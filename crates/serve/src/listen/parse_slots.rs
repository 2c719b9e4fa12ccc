//! The threads that parse large bodies, shared by owners: a body of a megabyte takes milliseconds, in
//! which a thread of the runtime would serve nobody else.

use std::sync::Arc;

use turnwire_event::Owner;
use turnwire_fair::{FairLimits, FairSlots};

use crate::error::RequestFault;

/// Bounds how many large bodies are parsed at the same time.
#[derive(Clone, Debug)]
pub struct ParseSlots(Arc<FairSlots<Owner>>);

impl ParseSlots {
    /// One slot for each of `cores`, and half of them for one owner.
    pub fn new(cores: usize) -> Self {
        Self(FairSlots::new(FairLimits {
            total: cores.max(1),
            per_owner: (cores / 2).max(1),
            // What waits has the permit of a transfer.
            waiting: usize::MAX,
            waiting_per_owner: usize::MAX,
        }))
    }

    /// Runs `parse` on a blocking thread once there is a slot for `owner`. The slot is the thread's,
    /// also if the request is gone.
    pub async fn run<T: Send + 'static>(
        &self,
        owner: &Owner,
        parse: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RequestFault> {
        let slot = self.0.acquire(owner).await;
        let slot = slot.map_err(|_| RequestFault::internal())?;
        let task = tokio::task::spawn_blocking(move || {
            let parsed = parse();
            drop(slot);
            parsed
        });
        task.await.map_err(|_| RequestFault::internal())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use turnwire_event::TenantId;

    #[tokio::test]
    async fn bodies_of_one_owner_leave_a_thread_to_others() {
        let owner = |name: &str| Owner {
            tenant: TenantId::default(),
            principal: name.parse().expect("a principal"),
        };
        let slots = ParseSlots::new(2);
        let (finish, finished) = mpsc::channel::<()>();
        let held = tokio::spawn({
            let (slots, greedy) = (slots.clone(), owner("greedy"));
            async move { slots.run(&greedy, move || finished.recv().is_ok()).await }
        });
        while slots.0.held() == 0 {
            tokio::task::yield_now().await;
        }
        let greedy = owner("greedy");
        let mut second = std::pin::pin!(slots.run(&greedy, || 2));
        let other = owner("quiet");
        tokio::select! {
            biased;
            _ = &mut second => panic!("the greedy owner has its thread already"),
            parsed = slots.run(&other, || 3) => assert_eq!(parsed, Ok(3)),
        }
        finish.send(()).expect("it waits");
        assert_eq!(held.await.expect("no panic"), Ok(true));
        assert_eq!(second.await, Ok(2));
    }
}
