package metrics

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// A ToolCount counts a tool's calls and their results since the process started.
type ToolCount struct {
	Tool      string
	Calls     int64
	Failed    int64 // including timeouts
	Timeouts  int64
	Seconds   float64 // the total time of all calls
	LastError string
	LastAt    *time.Time
}

// toolCounts holds the counts of each tool.
type toolCounts struct {
	mu   sync.Mutex
	tool map[string]ToolCount
}

func (c *toolCounts) add(tool, result string, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.tool[tool]
	n.Tool = tool
	n.Calls++
	n.Seconds += d.Seconds()
	if result != "ok" {
		now := time.Now()
		n.Failed, n.LastError, n.LastAt = n.Failed+1, result, &now
	}
	if result == "timeout" {
		n.Timeouts++
	}
	c.tool[tool] = n
}

// Tools returns the counts of the tools that were called, by name.
func (m *Metrics) Tools() []ToolCount {
	m.tools.counts.mu.Lock()
	defer m.tools.counts.mu.Unlock()
	list := []ToolCount{}
	for _, name := range slices.Sorted(maps.Keys(m.tools.counts.tool)) {
		list = append(list, m.tools.counts.tool[name])
	}
	return list
}
