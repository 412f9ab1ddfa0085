//! Many MCP servers behind one MCP endpoint: start, supervise, route, hot-swap
