package problems

import (
	"context"
	"fmt"
	"slices"
)

// Workspaces knows how full the folders of conversations are.
type Workspaces interface {
	// ListFull lists those folders that this process has written to and that have used at least this part (from 0
	// to 1) of their quota.
	ListFull(part float64) []string
	// UsedPart measures which part of its quota a folder has used, from 0 to 1; 0 if there is no such folder.
	UsedPart(ctx context.Context, name string) (float64, error)
}

const (
	fullThreshold      = 0.9
	recoveredThreshold = 0.8
	maxFullFolders     = 50 // the maximum number of full folders that owners are told about
)

// Quotas returns the Source that watches for conversations whose folders have nearly reached their quota, and names no
// more than maxFullFolders of them. megabytes is the quota.
func Quotas(w Workspaces, megabytes int) Source {
	const prefix = "quota/"
	return Source{
		ID: prefix, IsResponsible: func() bool { return true },
		FindConcerns: func(ctx context.Context, open map[string]bool) ([]Concern, error) {
			full := w.ListFull(fullThreshold)
			for id := range open {
				name := id[len(prefix):]
				if slices.Contains(full, name) {
					continue
				}
				part, err := w.UsedPart(ctx, name)
				if err != nil {
					return nil, fmt.Errorf("look how full a folder is: %w", err)
				}
				if part >= recoveredThreshold {
					full = append(full, name)
				}
			}
			var all []Concern
			for _, name := range full[:min(len(full), maxFullFolders)] {
				all = append(all, Concern{ID: prefix + name, Text: fmt.Sprintf(
					textFolderFull, name, megabytes)})
			}
			return all, nil
		},
		EndText: func(id string) string {
			return fmt.Sprintf(textFolderHasRoom, id[len(prefix):])
		},
	}
}
