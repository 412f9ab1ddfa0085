//! The MCP file server for worlds.
