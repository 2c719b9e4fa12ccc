//! Mistakes in `tools.yaml`.

use super::*;

#[test]
fn invalid_or_duplicate_tool_name_is_refused() {
    table(&[
        (
            Swap("tools.yaml", "name: clock", "name: note"),
            &["tools.yaml:14:12: error: `note` stands twice in `tools`; write: it once"],
        ),
        (
            Swap("tools.yaml", "name: clock", "name: ask_clock"),
            &[
                "tools.yaml:13:12: error: the tool `ask_clock` begins with `ask_`, as only the tools that ask a sub-agent do; write: another name; sub-agents are listed in `sub_agents` of orchestrator.yaml",
            ],
        ),
        (
            Swap("tools.yaml", "{name: clock,", "{"),
            &[
                "tools.yaml:13:5: error: `name` is missing; write: `name: …` (the tool's name: a to z, 0 to 9 and _, beginning with a letter, at most 48 characters. The name of a render tool begins with `render_`; no name begins with `ask_`)",
            ],
        ),
        (
            Swap(
                "tools.yaml",
                "name: render_offer_list",
                "name: show_offer_list",
            ),
            &[
                "tools.yaml:9:11: error: the render tool `show_offer_list` does not begin with `render_`; write: `render_offer_list`",
            ],
        ),
    ]);
}

#[test]
fn unknown_connector_is_refused() {
    table(&[
        (
            Swap("tools.yaml", "    connector: ccs_rest\n", ""),
            &[
                "tools.yaml:2:5: error: `connector` is missing; write: `connector: …` with one of `ccs_rest`, `ccs_mcp`, `render`, `direct`, `http`, `process`, `mcp`, `delegate`",
            ],
        ),
        (
            Swap("tools.yaml", "connector: ccs_rest", "connector: ccs_mcp"),
            &[
                "tools.yaml:3:16: error: the enricher `offer_search` is asked at the service `market`, which has `url`; write: `connector: ccs_rest`",
            ],
        ),
        (
            Swap("tools.yaml", "connector: ccs_rest", "connector: ccs_reast"),
            &["tools.yaml:3:16: error: unknown connector `ccs_reast`, did you mean `ccs_rest`?"],
        ),
        (
            Swap("tools.yaml", "connector: ccs_rest", "connector: soap"),
            &[
                "tools.yaml:3:16: error: unknown connector `soap`; write: one of `ccs_rest`, `ccs_mcp`, `render`, `direct`, `http`, `process`, `mcp`, `delegate`",
            ],
        ),
    ]);
}

#[test]
fn tool_fields_must_suit_its_connector() {
    table(&[
        (
            Swap("tools.yaml", "    description: Searches offers.\n", ""),
            &[
                "tools.yaml:2:5: error: `description` is missing; write: `description: what it does, for the model`",
            ],
        ),
        (
            Swap(
                "tools.yaml",
                "    input_schema: {type: object, properties: {query: {type: string}}}\n",
                "",
            ),
            &[
                "tools.yaml:2:5: error: `input_schema` is missing; write: `input_schema: {type: object, properties: {…}}`",
            ],
        ),
        (
            Swap("tools.yaml", "    shape: list\n", ""),
            &["tools.yaml:9:5: error: `shape` is missing; write: `shape: list`"],
        ),
        (
            Swap("tools.yaml", "shape: list", "shape: grid"),
            &["tools.yaml:11:12: error: unknown shape `grid`; write: one of `list`, `single`"],
        ),
        (
            Swap("tools.yaml", "function: clock", "function: clokc"),
            &["tools.yaml:13:48: error: unknown function `clokc`, did you mean `clock`?"],
        ),
        (
            Swap(
                "tools.yaml",
                "function: clock",
                "shape: list, function: clock",
            ),
            &[
                "tools.yaml:13:45: error: `shape` does not fit a direct tool; write: `connector: render`, or no `shape`",
            ],
        ),
        (
            Swap("tools.yaml", ", function: clock", ""),
            &["tools.yaml:13:5: error: `function` is missing; write: `function: clock`"],
        ),
        (
            Swap(
                "tools.yaml",
                "    status: searching_offers",
                "    timeout_ms: 0",
            ),
            &["tools.yaml:8:17: error: `timeout_ms` is 0; write: a number from 1 to 600000"],
        ),
        (
            Swap(
                "tools.yaml",
                "    status: searching_offers",
                "    status: searching_offers\n    timeout_ms: 12000",
            ),
            &["tools.yaml:9:17: error: `timeout_ms` is 12000; write: a number from 1 to 10000"],
        ),
        (
            Swap(
                "tools.yaml",
                "    status: searching_offers",
                "    status: searching_offers\n    timeout_ms: 10000",
            ),
            &[],
        ),
    ]);
}

#[test]
fn unknown_references_of_a_tool_are_reported() {
    table(&[
        (
            Swap(
                "tools.yaml",
                "enricher_id: offer_search",
                "enricher_id: offer_serch",
            ),
            &[
                "tools.yaml:4:18: error: connectors.yaml has no enricher `offer_serch`, did you mean `offer_search`?",
            ],
        ),
        (
            Swap(
                "tools.yaml",
                "enricher_id: offer_search",
                "enricher_id: weather",
            ),
            &[
                "tools.yaml:4:18: error: connectors.yaml has no enricher `weather`; write: an entry in `enrichers` of connectors.yaml with this enricher_id and domain_type `offer_list`",
            ],
        ),
        (
            Swap(
                "tools.yaml",
                "domain_type: offer_list",
                "domain_type: offers",
            ),
            &[
                "tools.yaml:5:18: error: the enricher `offer_search` has no domain_type `offers` in connectors.yaml; write: `offer_list`",
            ],
        ),
        (
            Swap(
                "tools.yaml",
                "status: searching_offers",
                "status: serching_offers",
            ),
            &[
                "tools.yaml:8:13: error: unknown status id `serching_offers`, did you mean `searching_offers`?",
            ],
        ),
    ]);
}

#[test]
fn unused_tool_is_a_warning() {
    table(&[(
        Swap("verticals/points/agent.yaml", "tools: [clock]", "tools: []"),
        &[
            "tools.yaml:13:12: warning: nobody uses the tool `clock`; write: its name in `tools` of an agent, or no entry",
        ],
    )]);
}

#[test]
fn status_tool_outside_sub_agents_is_refused() {
    table(&[(
        Swap(
            "orchestrator.yaml",
            "tools: [note]",
            "tools: [note, search_offers]",
        ),
        &[
            "orchestrator.yaml:8:15: error: the tool `search_offers` emits `searching_offers`, and only sub-agents emit statuses; write: a tool without `status`, or give it to a sub-agent",
        ],
    )]);
}

#[test]
fn input_schema_must_be_an_object_without_principal() {
    let schema = "{type: object, properties: {query: {type: string}}}";
    table(&[
        (
            Swap("tools.yaml", schema, "{type: array}"),
            &[
                "tools.yaml:7:19: error: the input of a tool is an object, not \"array\"; write: `type: object`",
            ],
        ),
        (
            Swap("tools.yaml", schema, "{type: objekt}"),
            &[
                "tools.yaml:7:19: error: `input_schema` is not a JSON Schema: `\"objekt\"` does not fit at /type; write: for example `{type: object, properties: {…}}`",
            ],
        ),
        (
            Swap(
                "tools.yaml",
                schema,
                "{type: object, properties: {query: {anyOf: [{$ref: '#/properties/query'}]}}}",
            ),
            &[
                "tools.yaml:7:19: error: `input_schema` cannot be checked in bounded time: a `$ref` leads back to where it stands without going into the data; write: fewer parts, and `$ref` as `#` or `#/…` from inside the data it describes",
            ],
        ),
        (
            Swap(
                "tools.yaml",
                schema,
                "{properties: {query: {type: string}}}",
            ),
            &[
                "tools.yaml:7:19: error: `input_schema` has no `type`, and the input of a tool is an object; write: `type: object`",
            ],
        ),
        (
            Swap(
                "tools.yaml",
                schema,
                "{type: object, properties: {principal: {type: string}}}",
            ),
            &[
                "tools.yaml:7:19: error: `principal` is no input: it is taken from the session; write: the schema without `principal`",
            ],
        ),
        (
            Swap(
                "tools.yaml",
                schema,
                "{type: object, required: [principal]}",
            ),
            &[
                "tools.yaml:7:19: error: `principal` is no input: it is taken from the session; write: the schema without `principal`",
            ],
        ),
        (
            Swap(
                "tools.yaml",
                "    shape: list\n",
                "    shape: list\n    input_schema: {type: object}\n",
            ),
            &[
                "tools.yaml:12:19: error: a render tool takes no `input_schema`: its own is used; write: no `input_schema`",
            ],
        ),
        (
            Swap(
                "tools.yaml",
                "function: clock}",
                "function: clock, input_schema: {type: object}}",
            ),
            &[
                "tools.yaml:13:69: error: a direct tool takes no `input_schema`: its own is used; write: no `input_schema`",
            ],
        ),
    ]);
}

#[test]
fn render_tool_without_an_enricher_is_a_warning() {
    table(&[
        (
            Swap(
                "tools.yaml",
                "    shape: list\n",
                "    shape: list\n    data_type: offer_lst\n",
            ),
            &[
                "tools.yaml:12:16: warning: no enricher has the domain_type `offer_lst`, did you mean `offer_list`?",
            ],
        ),
        (
            Swap(
                "tools.yaml",
                "    shape: list\n",
                "    shape: list\n    data_type: weather\n",
            ),
            &[
                "tools.yaml:12:16: warning: no enricher has the domain_type `weather`: there is nothing to show by id; write: `data_type` with a domain_type of connectors.yaml",
            ],
        ),
    ]);
}

// FR-10
#[test]
fn items_of_a_model_need_a_payload_schema() {
    const REFUSED: &str = "tools.yaml:12:18: error: no `payload_schema` checks the items of `offer_list`; write: a `payload_schema` for an enricher of the type, or no `model_items`";
    let shape = "    shape: list\n";
    let allowed = "    shape: list\n    model_items: true\n";
    let schema = "    payload_schema: schemas/offer_list.json\n";
    table(&[
        (Swap("tools.yaml", shape, allowed), &[]),
        (
            Swap(
                "tools.yaml",
                shape,
                "    shape: list\n    data_type: weather\n    model_items: true\n",
            ),
            &[
                "tools.yaml:12:16: warning: no enricher has the domain_type `weather`: there is nothing to show by id; write: `data_type` with a domain_type of connectors.yaml",
                "tools.yaml:13:18: error: no `payload_schema` checks the items of `weather`; write: a `payload_schema` for an enricher of the type, or no `model_items`",
            ],
        ),
    ]);
    let without_schema = Swap("connectors.yaml", schema, "");
    let reported = reported(&[without_schema, Swap("tools.yaml", shape, allowed)]);
    assert!(reported.contains(&REFUSED.to_owned()), "{reported:#?}");
    let unset = "    shape: list\n    model_items: false\n";
    let without_schema = Swap("connectors.yaml", schema, "");
    let changes = [without_schema, Swap("tools.yaml", shape, unset)];
    assert!(check(&files(&changes), &vars).pack.is_some());
}
