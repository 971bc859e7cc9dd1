package supervisor

import (
	"os"
	"runtime"
)

// init runs the supervisor, or the code that a supervisor runs inside the sandbox, if this program
// was started for that. It is the only init function of this program, because of when it runs: Go
// initializes a package as soon as the packages that it imports are initialized, in the order of
// their names. This package imports little, so it comes before the large libraries that only the
// server needs. They take three times as long as everything that a supervisor does before it starts
// its command, and each command would wait for them twice. So this package must import little:
// TestASupervisorWaitsForNoLibrary names what it may not import.
func init() {
	if code, asked := Main(os.Args, nil); asked {
		os.Exit(code)
	}
}

// Main does the work for which the sandbox starts this program again. asked reports whether args,
// in the form of os.Args, ask for that, and code is then the exit code. If proxy is nil, Main
// leaves a command that needs a proxy to a later call that has one.
func Main(args []string, proxy func(hosts []string) Proxy) (code int, asked bool) {
	if len(args) < 2 {
		return 0, false
	}
	switch needsProxy := len(args) > 2 && args[2] == Proxying; {
	case args[1] == enterCommand:
		runtime.LockOSThread() // restrictions apply to a thread; the thread that restricts itself becomes the command
		return enterSandbox(args[2:]), true
	case args[1] == Command && (proxy != nil || !needsProxy):
		runtime.LockOSThread() // a child gets a signal when the thread that started it ends
		return supervise(proxy), true
	}
	return 0, false
}
