package supervisor

import (
	"os"
	"runtime"
)

// init begins what this program was run for, where that is a supervisor, or what a
// supervisor runs inside. It is the one init function of this program, because of when it
// runs: Go initialises packages as soon as those that they import are, in the order of
// their names. This package imports little, so it comes before the large libraries that
// only the server needs. They take three times as long as all that a supervisor does
// before it starts its command, and each command would wait for them twice. What is
// imported here has to stay as small: TestASupervisorWaitsForNoLibrary says what is not.
func init() {
	if code, asked := Main(os.Args, nil); asked {
		os.Exit(code)
	}
}

// Main carries out what this program runs itself for. It tells whether args, as in
// os.Args, asked for that, and if so the exit code. Without a proxy it leaves what needs
// one to whoever has it.
func Main(args []string, proxy func(hosts []string) Proxy) (code int, asked bool) {
	if len(args) < 2 {
		return 0, false
	}
	switch needsProxy := len(args) > 2 && args[2] == Proxying; {
	case args[1] == enterCommand:
		runtime.LockOSThread() // walls are a thread's; the one that puts them up becomes the command
		return enter(args[2:]), true
	case args[1] == Command && (proxy != nil || !needsProxy):
		runtime.LockOSThread() // a child is told when the thread that started it ends
		return supervise(proxy), true
	}
	return 0, false
}
