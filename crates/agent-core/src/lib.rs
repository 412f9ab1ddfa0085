//! Agents: the step loop, tools over MCP or in process, budgets, trajectory
