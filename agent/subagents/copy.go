package subagents

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"parley/sessions/workspace"
	"parley/tools"
	"parley/tools/guard"
)

// Limits on what is copied into a sub-agent's workspace.
const (
	maxCopied      = 20 << 20 // bytes
	maxCopiedFiles = 1000
	ownFolder      = ".agent" // Parley keeps this folder of a workspace for itself; it is not copied
)

// A Copier copies files from one workspace to another.
type Copier struct {
	From, To *workspace.Dir

	bytes int64
	names []string
}

// Copy copies files, and folders with everything in them, to the same names in the other workspace. If a file is
// marked as possibly written by strangers, its copy is marked before it is written. In folders, it leaves out links
// and other special files. It leaves out ownFolder, and returns an error if there is more than may be copied.
func (c *Copier) Copy(ctx context.Context, paths []string) error {
	marks := guard.ReadMarks(c.From)
	for _, p := range paths {
		name, err := c.From.Name(p)
		if err != nil {
			return tools.Errorf(tools.InvalidPath, "%v", err)
		}
		info, err := c.From.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return tools.Errorf(tools.FileNotFound, "%v: list_directory shows what's there", err)
		case err != nil:
			return tools.Errorf(tools.InvalidPath, "%v", err)
		}
		if err := c.find(ctx, name, info); err != nil {
			return err
		}
	}
	var foreign []string
	for _, name := range c.names {
		if marks.Has(name) {
			foreign = append(foreign, name)
		}
	}
	if err := guard.ChangeMarks(c.To, marks.All, foreign, nil); err != nil {
		return err
	}
	for _, name := range c.names {
		if err := c.copyFile(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// find collects the names of the regular files to copy: the named file itself, or everything in it if it is a folder. It
// skips ownFolder and links, and refuses more than maxCopiedFiles files or maxCopied bytes.
func (c *Copier) find(ctx context.Context, name string, info fs.FileInfo) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if name == ownFolder || strings.HasPrefix(name, ownFolder+"/") {
		return nil
	}
	if !info.IsDir() {
		c.bytes += info.Size()
		c.names = append(c.names, name)
		switch {
		case len(c.names) > maxCopiedFiles:
			return tools.Errorf(tools.InvalidArgs, "there are more than %d files, which is the most that are copied: name fewer", maxCopiedFiles)
		case c.bytes > maxCopied:
			return tools.Errorf(tools.InvalidArgs, "the files have more than %d MB, which is the most that is copied: name fewer", maxCopied>>20)
		}
		return nil
	}
	entries, err := c.From.ReadDir(name)
	if err != nil {
		return tools.Errorf(tools.InvalidPath, "%v", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was removed in the meantime
		}
		if err != nil {
			return tools.Errorf(tools.ExecutionFailed, "%v", err)
		}
		if !info.IsDir() && !info.Mode().IsRegular() {
			continue // a link may lead anywhere
		}
		if err := c.find(ctx, path.Join(name, e.Name()), info); err != nil {
			return err
		}
	}
	return nil
}

func (c *Copier) copyFile(ctx context.Context, name string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	content, err := fs.ReadFile(c.From, name)
	switch {
	case err != nil:
		return tools.Errorf(tools.ExecutionFailed, "%v", err)
	case int64(len(content)) > maxCopied: // it has grown in the meantime
		return tools.Errorf(tools.InvalidArgs, "%s has more than %d MB, which is the most that is copied", name, maxCopied>>20)
	}
	if err := c.To.Write(name, content); err != nil {
		return tools.Errorf(tools.ExecutionFailed, "%v", err)
	}
	return nil
}
