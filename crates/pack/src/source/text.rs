//! The shapes of `locales/<tag>.yaml` and `overrides.yaml`.

use serde::Deserialize;
#[cfg(feature = "schema")]
use turnwire_event::RenderPolicy;

#[cfg(feature = "schema")]
use super::form::NOT_BLANK;
use super::form::{Pairs, ShortOrLong};
use crate::yaml::Located;

/// Render keys → texts.
pub(crate) type LocaleSource = Pairs<Located<ShortOrLong<String, LineSource>>>;

/// A text with the form it has inside a sentence.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct LineSource {
    /// The sentence that users see.
    #[cfg_attr(feature = "schema", schemars(required, regex(pattern = NOT_BLANK)))]
    pub(crate) message: Option<Located<String>>,
    /// The same as a part of a sentence, for several statuses shown as one.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = NOT_BLANK)))]
    pub(crate) phrase: Option<Located<String>>,
}

/// Flags → status ids or event types → what changes.
pub(crate) type OverridesSource = Pairs<Pairs<Located<ChangeSource>>>;

/// What changes: at least one of the two.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeSource {
    /// How the status or event is shown instead.
    #[cfg_attr(feature = "schema", schemars(with = "Option<RenderPolicy>"))]
    pub(crate) policy: Option<Located<String>>,
    /// The key of the text that is shown instead; for status ids only.
    pub(crate) render_key: Option<Located<String>>,
}
