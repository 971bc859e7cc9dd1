package openai

import (
	"sync"

	"parley/agent/openai/thinktags"
	"parley/agent/openai/toollist"
	"parley/agent/openai/window"
)

// A server is the server of one model, with everything that all requests to it share.
type server struct {
	cfg     Config
	host    string
	windows *window.Finder
	tools   toollist.Writer
	bodies  bodies
	lists   messageLists
	readers sync.Pool // of *bufio.Reader, for reading the streams of answers

	// thinksBare remembers whether the model's texts begin with thinking without an opening tag.
	thinksBare thinktags.Habit
}
