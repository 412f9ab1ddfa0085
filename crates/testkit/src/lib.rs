//! Checking stubs of model providers and MCP servers
