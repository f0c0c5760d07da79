//! APIs: named queries with arguments and security rules (Q25).

use std::collections::BTreeMap;

use watershed_compilers::{Arguments, Kind as ResourceKind, RenderError, Scope, nearest_name};
use watershed_core::Key;
use watershed_metrics::Policy;
use watershed_proto::value::Kind;
use watershed_proto::{ApiSpec, DataResolver, MapValue, Message as _, Value};

use super::viewer::Rules;
use super::{Ask, BoxFuture, Prepared, ResolveError, Resolvers, Viewer, rendered};

/// Kind under which the catalog stores APIs.
pub const KIND: &str = ResourceKind::Api.as_str();

/// The most APIs in a chain of calls.
pub(super) const DEEPEST: usize = 8;

/// Returns the data block of a call to an API from outside.
#[must_use]
pub fn call(name: &str) -> DataResolver {
    let properties = BTreeMap::from([("api".to_owned(), Value::from(name))]);
    DataResolver {
        resolver: KIND.to_owned(),
        properties: Some(MapValue { fields: properties }),
    }
}

impl Resolvers<'_> {
    /// Prepares the query of the API that a data block calls. `path` names the calling APIs.
    pub(super) fn prepare_call<'a>(
        &'a self,
        ask: &'a Ask<'a>,
        path: &'a [String],
    ) -> BoxFuture<'a, Result<Prepared, ResolveError>> {
        Box::pin(async move {
            let properties = ask.data.properties.clone().unwrap_or_default();
            let name = properties.str("api").unwrap_or_default();
            let mut path = path.to_vec();
            let is_cycle = path.iter().any(|one| one.eq_ignore_ascii_case(name));
            path.push(name.to_owned());
            if is_cycle || path.len() > DEEPEST {
                return Err(ResolveError::Cycle(path));
            }
            let viewer = match ask.skips_policies {
                true => &Viewer::Owner,
                false => ask.viewer,
            };
            let (key, spec) = self.api(name, viewer).await?;
            if path.len() == 1 {
                self.check_arguments(name, &ask.args)?;
            }
            let data = spec.data.clone().unwrap_or_default();
            let inner = Ask {
                data: &data,
                own: &key,
                variables: &spec.variables,
                skips_policies: ask.skips_policies || spec.skip_nested_security,
                args: self.arguments(ask, &properties)?,
                ..ask.clone()
            };
            self.prepare_at(&inner, &path).await
        })
    }

    /// Returns the arguments that an API reads: its own, and those of the APIs that it calls.
    #[must_use]
    pub fn arguments_of(&self, api: &str) -> Arguments {
        let mut read = Arguments::default();
        let mut fixed = Vec::new();
        let mut next = Some(api.to_owned());
        for _ in 0..DEEPEST {
            let Some(spec) = next.take().and_then(|name| self.api_spec(&name)) else {
                break;
            };
            let data = spec.data.unwrap_or_default();
            let properties = data.properties.unwrap_or_default();
            let mut own = Arguments::default();
            let texts = properties.fields.values();
            texts.for_each(|value| each_text(value, &mut |text| own.add(text)));
            fixed.iter().for_each(|name: &String| own.fix(name));
            read.extend(own);
            if data.resolver == KIND {
                let args = properties.get("args").and_then(Value::as_map);
                fixed.extend(args.into_iter().flat_map(|args| args.keys().cloned()));
                next = properties.str("api").map(str::to_owned);
            }
        }
        read
    }

    fn api_spec(&self, name: &str) -> Option<ApiSpec> {
        let row = self.views.resources.find(&Key::new(KIND, name))?;
        ApiSpec::decode(row.spec.as_ref()).ok()
    }

    /// Refuses arguments that the API does not read, since a misspelt argument would silently change the answer.
    fn check_arguments(&self, api: &str, args: &BTreeMap<String, Value>) -> Result<(), ResolveError> {
        if args.is_empty() {
            return Ok(());
        }
        let read = self.arguments_of(api);
        let Some(name) = args.keys().find(|name| !read.has(name)) else {
            return Ok(());
        };
        let names: Vec<&str> = read.names().collect();
        let hint = match nearest_name(name, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => "it takes none".to_owned(),
            None => format!("it reads `{}`", names.join("`, `")),
        };
        Err(ResolveError::UnknownArgument {
            api: api.to_owned(),
            name: name.clone(),
            hint,
        })
    }

    /// Returns the spec of an API that a viewer may call.
    ///
    /// # Errors
    /// One that is unknown or does not compile, and one that the viewer may not call.
    pub async fn callable(&self, name: &str, viewer: &Viewer) -> Result<ApiSpec, ResolveError> {
        Ok(self.api(name, viewer).await?.1)
    }

    /// Finds an API, if the viewer may call it.
    async fn api(&self, name: &str, viewer: &Viewer) -> Result<(Key, ApiSpec), ResolveError> {
        let unknown = || ResolveError::UnknownApi(name.to_owned());
        let row = self
            .views
            .resources
            .find(&Key::new(KIND, name))
            .ok_or_else(unknown)?;
        let spec = ApiSpec::decode(row.spec.as_ref()).map_err(|_| unknown())?;
        if spec.fault.is_some() {
            return Err(ResolveError::Faulty(name.to_owned()));
        }
        let scope = Scope {
            environment: self.views.environment.to_owned(),
            variables: self.variables(&spec.variables)?,
            ..Scope::default()
        };
        let layers = [spec.security_rules.as_slice()];
        let policy = Rules::evaluated(&layers, viewer, &scope, &self.views.conditions).await;
        let policy = policy.map_err(|message| ResolveError::Policy {
            api: name.to_owned(),
            message,
        })?;
        // One that says nothing of security is open to whoever may ask at all.
        if !Policy::of(&policy).has_access() {
            return Err(ResolveError::NotAllowed(name.to_owned()));
        }
        Ok((row.key(), spec))
    }

    /// Returns the arguments of a call; values fixed in the file override the caller's.
    fn arguments(
        &self,
        ask: &Ask<'_>,
        properties: &MapValue,
    ) -> Result<BTreeMap<String, Value>, ResolveError> {
        let mut args = ask.args.clone();
        let Some(fixed) = properties.get("args").and_then(Value::as_map) else {
            return Ok(args);
        };
        let scope = self.scope(ask)?;
        let entry = |(name, value): (&String, &Value)| -> Result<_, RenderError> {
            Ok((name.clone(), Value::from(rendered(value, &scope)?)))
        };
        let fixed = fixed.iter().map(entry).collect::<Result<Vec<_>, _>>()?;
        args.extend(fixed);
        Ok(args)
    }
}

/// Calls `visit` with each text in a value.
pub(super) fn each_text(value: &Value, visit: &mut impl FnMut(&str)) {
    match &value.kind {
        Some(Kind::String(text)) => visit(text),
        Some(Kind::List(list)) => list.values.iter().for_each(|item| each_text(item, visit)),
        Some(Kind::Map(map)) => map.fields.values().for_each(|item| each_text(item, visit)),
        _ => {}
    }
}
