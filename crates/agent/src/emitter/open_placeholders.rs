//! The placeholders that an agent has announced with `data.loading` and not filled. What an agent
//! leaves open when it ends is ended with an empty `data.loaded`, so that clients remove it.

use turnwire_event::Body;
use turnwire_event::body::data::{CollectionKey, DataLoaded, DataLoading};

/// The `data.loading` events without a `data.loaded`.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenPlaceholders(Vec<DataLoading>);

impl OpenPlaceholders {
    /// True if `body` opens or fills a placeholder.
    pub(crate) fn concerns(body: &Body) -> bool {
        matches!(body, Body::DataLoading(_) | Body::DataLoaded(_))
    }

    pub(crate) fn apply(&mut self, body: &Body) {
        match body {
            Body::DataLoading(loading) => self.0.push(loading.clone()),
            Body::DataLoaded(loaded) => self.0.retain(|open| open.id != loaded.id),
            _ => {}
        }
    }

    /// Takes the open placeholders as the events that end them.
    pub(crate) fn take_endings(&mut self) -> Vec<Body> {
        let open = std::mem::take(&mut self.0).into_iter();
        let ended = open.map(|loading| {
            Body::DataLoaded(DataLoaded {
                id: loading.id,
                data_type: loading.data_type,
                key: CollectionKey { ids: Vec::new() },
                items: Vec::new(),
            })
        });
        ended.collect()
    }
}
