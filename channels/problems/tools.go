package problems

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// mostNamed is how many tools owners read the names of.
const mostNamed = 20

// LeftTools returns the Source that watches for tools that models are not shown because their servers
// do not take them. left returns their names, by the model's; machine is the name of this machine,
// whose processes know of them.
func LeftTools(machine string, left func() map[string][]string) Source {
	prefix := "tools/" + machine + "/"
	return Source{
		ID: prefix, Judges: func() bool { return true },
		Look: func(context.Context, map[string]bool) (all []Concern, err error) {
			found := left()
			for _, model := range slices.Sorted(maps.Keys(found)) {
				names := found[model]
				list, more := strings.Join(names[:min(len(names), mostNamed)], "`, `"), ""
				if n := len(names) - mostNamed; n > 0 {
					more = fmt.Sprintf(" and %d more", n)
				}
				all = append(all, Concern{ID: prefix + model, Count: len(names), Text: fmt.Sprintf(
					textToolsRefused, model, list, more)})
			}
			return all, nil
		},
		Over: func(string) string { return "" },
	}
}
