//go:build !unix

package plainhttp

import "net"

// isQuiet reports whether an idle connection is open, and the server has sent nothing. This system
// cannot tell, so no connection is reused there.
func isQuiet(net.Conn) bool { return false }
