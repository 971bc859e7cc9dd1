// Package image provides the tool with which a model looks at a picture in the workspace.
package image

import (
	"context"
	"time"

	"parley/tools"
)

// A Picture is a picture that was made small enough to show to a model.
type Picture struct {
	tools.Picture
	Width, Height int
}

type args struct {
	Path string `json:"path" jsonschema:"picture, relative to the workspace: PNG, JPEG, GIF or WebP"`
}

type result struct {
	Path   string `json:"path"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
	Note   string `json:"note"`
}

// New makes the tool image. The function show prepares a picture of a call's session to be shown to
// the model; its errors are for the model.
func New(show func(ctx context.Context, call tools.Call, path string) (Picture, error)) []tools.Tool {
	return []tools.Tool{tools.New(tools.Spec{
		Name: "image", Effect: tools.Pure, Permission: tools.FileRead, Timeout: 10 * time.Second, MaxTimeout: 60 * time.Second,
		Touches: tools.Touches(func(a args) tools.Touch {
			return tools.Touch{Subject: tools.Paths{a.Path}, Reads: tools.Paths{a.Path}, Writes: tools.NoFiles{}, Outward: tools.NothingOutward{}}
		}),
		Description: "Look at a picture of the workspace: you are shown it behind the result. Large ones are made smaller first.",
	}, func(ctx context.Context, call tools.Call, a args) (any, error) {
		p, err := show(ctx, call, a.Path)
		if err != nil {
			return nil, err
		}
		return tools.Shown{
			Value:    result{Path: p.Path, Width: p.Width, Height: p.Height, Note: "the picture follows"},
			Pictures: []tools.Picture{p.Picture},
		}, nil
	})}
}
