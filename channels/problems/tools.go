package problems

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxNamed is the maximum number of tools that are named to owners.
const maxNamed = 20

// LeftTools returns the Source that watches for tools that are not offered to models because the models' servers do
// not accept them. left returns the tools' names, by model; machine is the name of this machine, whose processes
// know about them.
func LeftTools(machine string, left func() map[string][]string) Source {
	prefix := "tools/" + machine + "/"
	return Source{
		ID: prefix, IsResponsible: func() bool { return true },
		FindConcerns: func(context.Context, map[string]bool) (all []Concern, err error) {
			found := left()
			for _, model := range slices.Sorted(maps.Keys(found)) {
				names := found[model]
				list, more := strings.Join(names[:min(len(names), maxNamed)], "`, `"), ""
				if n := len(names) - maxNamed; n > 0 {
					more = fmt.Sprintf(" and %d more", n)
				}
				all = append(all, Concern{ID: prefix + model, Count: len(names), Text: fmt.Sprintf(
					textToolsRefused, model, list, more)})
			}
			return all, nil
		},
		EndText: func(string) string { return "" },
	}
}
