//! What the servers offer together: the names under which it is served, and the way back from a
//! served name to a server and its own name.

use std::collections::HashMap;

use crate::jsonrpc::{self, Raw, RawObject};

/// The four lists of MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Tools,
    Prompts,
    Resources,
    Templates,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] =
        [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    pub(crate) const fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }

    /// The key of the list in its result.
    pub(crate) const fn list_key(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// The key by which an item is addressed.
    const fn item_key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Tools => "tool",
            Self::Prompts => "prompt",
            Self::Resources => "resource",
            Self::Templates => "resource template",
        }
    }
}

/// How names are served: unchanged from one server, marked with the server's name from several
/// (`spec/environment.md` §7.5).
#[derive(Debug, Clone)]
pub(crate) struct Naming {
    pub(crate) server: String,
    pub(crate) marked: bool,
}

impl Naming {
    pub(crate) fn name(&self, own: &str) -> String {
        if self.marked {
            format!("{}_{own}", self.server)
        } else {
            own.to_owned()
        }
    }

    /// `<scheme>://<server>/<rest>`; what has no `://` stays as it is.
    pub(crate) fn uri(&self, own: &str) -> String {
        match own.split_once("://") {
            Some((scheme, rest)) if self.marked => format!("{scheme}://{}/{rest}", self.server),
            _ => own.to_owned(),
        }
    }

    /// The server's own form of a served URI; `None` where the URI is not of this server.
    pub(crate) fn own_uri(&self, served: &str) -> Option<String> {
        if !self.marked {
            return Some(served.to_owned());
        }
        let (scheme, rest) = served.split_once("://")?;
        let rest = rest.strip_prefix(self.server.as_str())?.strip_prefix('/')?;
        Some(format!("{scheme}://{rest}"))
    }
}

/// Where a served name leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    /// The place of the server in the configuration.
    pub(crate) server: usize,
    /// The server's own name of the thing.
    pub(crate) own: String,
}

/// Two servers whose things would get the same name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Clash {
    pub(crate) kind: &'static str,
    pub(crate) served: String,
    pub(crate) first: (String, String),
    pub(crate) second: (String, String),
}

impl std::fmt::Display for Clash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} `{}` of server `{}` and `{}` of server `{}` would both be served as `{}`",
            self.kind, self.first.1, self.first.0, self.second.1, self.second.0, self.served
        )
    }
}

/// One list as it is served.
#[derive(Debug, Default)]
pub(crate) struct Index {
    items: Vec<(Route, RawObject)>,
    routes: HashMap<String, usize>,
}

impl Index {
    /// Merges the lists of the servers, in order. Of things with the same name the first is served.
    pub(crate) fn build(
        kind: Kind,
        namings: &[Naming],
        lists: &[Vec<RawObject>],
    ) -> (Self, Vec<Clash>) {
        let mut index = Self::default();
        let mut clashes = Vec::new();
        for (server, (naming, list)) in namings.iter().zip(lists).enumerate() {
            for item in list {
                let Some(own) = item.text(kind.item_key()) else {
                    tracing::warn!(server = %naming.server, "a {} without a name is left out", kind.word());
                    continue;
                };
                let served = match kind {
                    Kind::Tools | Kind::Prompts => naming.name(&own),
                    Kind::Resources | Kind::Templates => naming.uri(&own),
                };
                if let Some(known) = index.routes.get(&served) {
                    let first = &index.items[*known].0;
                    clashes.push(Clash {
                        kind: kind.word(),
                        served,
                        first: (namings[first.server].server.clone(), first.own.clone()),
                        second: (naming.server.clone(), own),
                    });
                    continue;
                }
                let mut item = item.clone();
                if served != own {
                    item.set(kind.item_key(), jsonrpc::raw(&served));
                }
                index.routes.insert(served, index.items.len());
                index.items.push((Route { server, own }, item));
            }
        }
        (index, clashes)
    }

    pub(crate) fn route(&self, served: &str) -> Option<&Route> {
        self.routes.get(served).map(|place| &self.items[*place].0)
    }

    /// The entry of a served name.
    pub(crate) fn item(&self, served: &str) -> Option<&RawObject> {
        self.routes.get(served).map(|place| &self.items[*place].1)
    }

    /// The only thing with this name of its own.
    pub(crate) fn route_of_own(&self, own: &str) -> Option<&Route> {
        let mut found = self.items.iter().filter(|(route, _)| route.own == own);
        let only = found.next()?;
        found.next().is_none().then_some(&only.0)
    }

    /// The result of the list method, of the items that `wanted` accepts by served and own name.
    pub(crate) fn result(&self, kind: Kind, wanted: impl Fn(&str, &str) -> bool) -> Raw {
        let items: Vec<&RawObject> = self
            .items
            .iter()
            .filter(|(route, item)| {
                item.text(kind.item_key())
                    .is_some_and(|served| wanted(&served, &route.own))
            })
            .map(|(_, item)| item)
            .collect();
        let mut result = RawObject::default();
        result.set(kind.list_key(), jsonrpc::raw(&items));
        result.to_raw()
    }

    /// How many items `wanted` accepts.
    pub(crate) fn count(&self, wanted: impl Fn(&str, &str) -> bool) -> usize {
        self.routes
            .iter()
            .filter(|(served, place)| wanted(served, &self.items[**place].0.own))
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naming(server: &str, marked: bool) -> Naming {
        Naming {
            server: server.to_owned(),
            marked,
        }
    }

    fn tools(names: &[&str]) -> Vec<RawObject> {
        names
            .iter()
            .map(|name| {
                serde_json::from_str(&format!(r#"{{"z":1,"name":"{name}","a":2.50}}"#)).unwrap()
            })
            .collect()
    }

    #[test]
    fn names_that_would_be_equal_are_found_and_never_guessed() {
        let namings = [naming("api", true), naming("api_v2", true)];
        let (index, clashes) = Index::build(
            Kind::Tools,
            &namings,
            &[tools(&["v2_list", "get"]), tools(&["list", "v2"])],
        );
        assert_eq!(clashes.len(), 1);
        let text = clashes[0].to_string();
        assert!(
            text.contains("`api`") && text.contains("`api_v2`"),
            "{text}"
        );
        assert_eq!(
            index.route("api_v2_v2"),
            Some(&Route {
                server: 1,
                own: "v2".to_owned()
            })
        );
        assert_eq!(index.route("api_v2_lis"), None);
    }

    #[test]
    fn items_keep_all_but_their_name() {
        let (index, _) = Index::build(Kind::Tools, &[naming("s", true)], &[tools(&["t"])]);
        assert_eq!(
            index.result(Kind::Tools, |_, _| true).get(),
            r#"{"tools":[{"z":1,"name":"s_t","a":2.50}]}"#
        );
    }

    #[test]
    fn a_uri_gets_its_server_and_loses_it_again() {
        let name = naming("alpha", true);
        assert_eq!(name.uri("data://info"), "data://alpha/info");
        assert_eq!(
            name.own_uri("data://alpha/info").as_deref(),
            Some("data://info")
        );
        assert_eq!(name.own_uri("data://alphabet/info"), None);
        assert_eq!(name.uri("urn:x"), "urn:x");
        let alone = naming("alpha", false);
        assert_eq!(alone.uri("data://info"), "data://info");
    }
}
