package home

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"

	"parley/channels"
	"parley/channels/sqlbook"
	"parley/tools/guard"
	"parley/tools/memory"
)

// An Eraser erases something from the book, whose file is rewritten some time later; see [erase.Rewriter].
type Eraser = func(ctx context.Context, erase func(context.Context) (erased bool, err error)) error

// A RewrittenBook is a Book whose Forget also has the database's file rewritten later, so that no erased text stays in it.
type RewrittenBook struct {
	*sqlbook.Book
	Erase Eraser
}

// Forget erases a memory, and what was proposed for it.
func (b RewrittenBook) Forget(ctx context.Context, scope, owner string) error {
	return b.Erase(ctx, func(ctx context.Context) (bool, error) {
		content, _, err := b.Memory(ctx, scope, owner)
		if err != nil {
			return false, err
		}
		proposed, err := b.ProposalsTo(ctx, owner)
		if err != nil {
			return false, err
		}
		return content != "" || len(proposed) > 0, b.Book.Forget(ctx, scope, owner)
	})
}

// EditedMemories are all memories, for people who operate the bot to view and change: those of people and agents,
// which are in the book, and those of sessions, each in a file in its workspace.
type EditedMemories struct {
	Home  *Home
	Erase Eraser
}

// inBook reports whether the memories of a scope are in the book.
func inBook(scope string) bool { return scope == channels.ScopePerson || scope == channels.ScopeAgent }

// List lists at most limit memories of people and agents, beginning after owner's memory in that scope.
func (m EditedMemories) List(ctx context.Context, scope, owner string, limit int) ([]channels.MemoryInfo, error) {
	return m.Home.Book.ListMemories(ctx, scope, owner, limit)
}

// Read returns a memory; an empty one if there is none. An error that wraps EFBIG says that the file is too long to be
// a memory.
func (m EditedMemories) Read(ctx context.Context, scope, owner string) (channels.Memory, error) {
	if inBook(scope) {
		content, untrusted, err := m.Home.Book.Memory(ctx, scope, owner)
		return channels.Memory{Content: content, Untrusted: untrusted}, err
	}
	files, err := m.Home.WorkspaceFiles(owner)
	if err != nil {
		return channels.Memory{}, err
	}
	file, err := files.Open(memory.File)
	if errors.Is(err, fs.ErrNotExist) {
		return channels.Memory{}, nil
	}
	if err != nil {
		return channels.Memory{}, err
	}
	defer func() { _ = file.Close() }() // it was only read
	content, err := io.ReadAll(io.LimitReader(file, memory.MaxBytes+1))
	if err == nil && len(content) > memory.MaxBytes {
		err = fmt.Errorf("read %s: %w", memory.File, syscall.EFBIG)
	}
	return channels.Memory{Content: string(content), Untrusted: guard.ReadMarks(files).Has(memory.File)}, err
}

// Change replaces a memory with what change makes of it, unless change returns an error. A memory that strangers may
// have written keeps its mark, because some of their text may still be there.
func (m EditedMemories) Change(ctx context.Context, scope, owner string, change func(old string) (string, error)) error {
	if inBook(scope) {
		return m.Home.Book.Remember(ctx, scope, owner, "edit:"+rand.Text(), false, false, change)
	}
	dir, err := m.Home.Workspace(owner)
	if err != nil {
		return err
	}
	return dir.Update(memory.File, memory.MaxBytes, func(old []byte) ([]byte, error) {
		next, err := change(string(old))
		return []byte(next), err
	})
}

// Forget erases a memory, if may returns no error for its text. For a session it leaves an empty file.
func (m EditedMemories) Forget(ctx context.Context, scope, owner string, may func(content string) error) error {
	if !inBook(scope) {
		return m.Change(ctx, scope, owner, func(old string) (string, error) { return "", may(old) })
	}
	var refused error
	err := m.Erase(ctx, func(ctx context.Context) (bool, error) {
		err := m.Home.Book.ForgetIf(ctx, scope, owner, func(content string) error {
			refused = may(content)
			return refused
		})
		if refused != nil {
			return false, nil
		}
		return true, err
	})
	return errors.Join(refused, err)
}
