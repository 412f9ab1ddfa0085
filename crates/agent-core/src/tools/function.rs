//! Functions of this process as tools.

use std::future::Future;

use formats::Object;
use formats::chat::ToolDefinition;
use futures::FutureExt;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Tool, ToolOutput};

/// A [`Tool`] made of a function.
pub struct FunctionTool<F> {
    definition: ToolDefinition,
    read_only: bool,
    function: F,
}

impl<F> FunctionTool<F> {
    /// Says that the function changes nothing: calls of one turn may run side by side.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }
}

impl<F, Fut> FunctionTool<F>
where
    F: Fn(Object) -> Fut + Send + Sync,
    Fut: Future<Output = Result<ToolOutput, String>> + Send,
{
    /// A tool that calls `function`; `parameters` is the JSON Schema of its arguments.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        parameters: Value,
        function: F,
    ) -> Self {
        Self {
            definition: ToolDefinition::new(name, description, parameters),
            read_only: false,
            function,
        }
    }
}

/// What [`FunctionTool::typed`] makes of a function: it takes the arguments as they come.
type Untyped = Box<dyn Fn(Object) -> BoxFuture<'static, Result<ToolOutput, String>> + Send + Sync>;

impl FunctionTool<()> {
    /// A tool that calls `function` with its arguments read into `Args`, whose JSON Schema, made by
    /// schemars, is what the model is told; the doc comments of the fields are the descriptions.
    ///
    /// Arguments that do not fit are answered with the reason and the function is not called.
    pub fn typed<Args, Out, Fut>(
        name: impl Into<String>,
        description: impl Into<String>,
        function: impl Fn(Args) -> Fut + Send + Sync + 'static,
    ) -> FunctionTool<Untyped>
    where
        Args: DeserializeOwned + JsonSchema + 'static,
        Out: Into<ToolOutput>,
        Fut: Future<Output = Result<Out, String>> + Send + 'static,
    {
        FunctionTool {
            definition: ToolDefinition::new(name, description, parameters::<Args>()),
            read_only: false,
            function: Box::new(move |given| {
                match serde_path_to_error::deserialize(Value::Object(given)) {
                    Ok(arguments) => function(arguments)
                        .map(|outcome| outcome.map(Into::into))
                        .boxed(),
                    Err(error) => {
                        let reason = format!("the arguments do not fit the schema: {error}");
                        futures::future::ready(Err(reason)).boxed()
                    }
                }
            }),
        }
    }
}

/// The schema of `Args` without what says nothing to a model.
fn parameters<Args: JsonSchema>() -> Value {
    let mut schema = schemars::schema_for!(Args);
    schema.remove("$schema");
    schema.remove("title");
    schema.to_value()
}

impl<F, Fut> Tool for FunctionTool<F>
where
    F: Fn(Object) -> Fut + Send + Sync,
    Fut: Future<Output = Result<ToolOutput, String>> + Send,
{
    fn definition(&self) -> ToolDefinition {
        self.definition.clone()
    }

    fn is_read_only(&self) -> bool {
        self.read_only
    }

    fn call(&self, arguments: Object) -> BoxFuture<'_, Result<ToolOutput, String>> {
        async move { (self.function)(arguments).await }.boxed()
    }
}
