//! Reads and checks packs: files in, checked values out, every mistake with its position.
//!
//! A pack is a folder: all that a team writes to put its agents on the platform. [`check()`] reads the
//! folder and returns a [`Pack`] in which every name refers to something that exists, or every mistake
//! at once: file, line, column, what is wrong, what to write instead.

mod text;
pub mod yaml;
mod finding;
pub mod complexity;
mod files;
mod pack;
mod source;
pub mod schema;
mod check;

pub use check::{PackReport, check, check_against};
pub use files::{PackFiles, PackReadError};
pub use finding::{FindingLevel, PackFinding};
pub use pack::agent::{
    AgentDefinition, AgentKind, HistoryLimits, OnCancel, PromptBlockRef, SubAgentRef,
};
pub use pack::flag::{AXIS2_TERMINAL_FLAG, FeatureFlag, FlagCohort, FlagRollout, WIRE_V04_FLAG};
pub use pack::locale::{LocaleLine, LocaleTable};
pub use pack::model_use::ModelUse;
pub use pack::overrides::{OverrideTarget, RenderOverride};
pub use pack::price::{ModelPrice, PriceTable};
pub use pack::provider::{
    ApiKeySource, DialectName, ParamsDef, ProviderDef, RetriesDef, TimeoutsDef,
};
pub use pack::relay::{RelayDef, RelayDialect};
pub use pack::routing::{ModelChoice, RoutingCondition, RoutingPolicy, RoutingRule};
pub use pack::status::{RegisteredStatus, StatusLifecycle, StatusRegistry};
pub use pack::tool::{
    BuiltinFunction, ClientCertificate, DataService, Enricher, HttpDef, KeyHeader, McpServer,
    McpTransport, ProcessDef, ProcessLimits, ProcessOutput, ProcessStdin, RenderShape, ToolDef,
    ToolKind, ToolMethod,
};
pub use pack::{Pack, PackLimits};
pub use text::template::{TemplatePart, is_plain_url_char, template_parts};
pub use text::wording::{closest_name, one_line, quoted_list};
