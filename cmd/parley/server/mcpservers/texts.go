// This file holds the text that people see from this package.

package mcpservers

const (
	textSomebodySignedIn = "Somebody has signed in to the MCP server %s for Parley."
	textSignedIn         = "Parley is signed in to %s. You can close this page."
	textNoServer         = "No MCP server by that name is configured here."
	textUnknownTools     = "Parley doesn't know that server's tools: parley mcp list, or GET /v1/mcp, lists the servers that are configured"
	textNewTools         = "The MCP server %s has new or changed tools, which agents can't use yet: %s. Look at them with `parley mcp list`, and accept them with `parley mcp accept %s`."
	textSignInNeeded     = "The MCP server %s needs somebody to sign in, or to grant more access; agents can't use it until then. Run `parley mcp login %s` where Parley runs, and open the address that it prints."
)

func textNotSignedIn(reason string) string {
	return "Parley isn't signed in: " + reason + "."
}
