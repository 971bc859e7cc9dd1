package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"parley/cmd/parley/config"
	"parley/cmd/parley/data/backup"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/data/homedb"
	"parley/cmd/parley/terminal"
	"parley/tools/crash"
	"parley/tools/plainjson"
)

type backupCmd struct {
	File string `arg:"" help:"The file to write; - means standard output."`
}

// Help shows examples.
func (backupCmd) Help() string {
	return examples("parley backup parley.backup", "parley backup - | ssh elsewhere 'cat > parley.backup'")
}

// Run writes a backup of the home, which may be in use.
func (c backupCmd) Run(ctx context.Context, flags *globalFlags, tty terminal.Terminal) error {
	cfg, err := flags.load(tty, config.Options{WithoutSecrets: true})
	if err != nil {
		return err
	}
	if c.File != "-" {
		if err := backup.CheckTarget(c.File); err != nil {
			return fmt.Errorf("write the backup: %w", err)
		}
	}
	for _, part := range keptElsewhere(cfg) {
		fmt.Fprintf(tty.Err, "not in this backup: %s; back that data up there\n", part)
	}
	if err := home.CheckPlaces(cfg); err != nil {
		return err
	}
	folders, err := home.AgentFolders(cfg)
	if err != nil {
		return err
	}
	source := backup.Source{Home: cfg.Home, Workspaces: cfg.Workspace.Root, Folders: folders, Version: thisBuild().Version}
	m, err := c.write(ctx, source, progressBar(flags, tty), tty.Out)
	if err != nil {
		return err
	}
	for _, name := range m.Skipped {
		fmt.Fprintf(tty.Err, "left out, because it isn't a regular file: %s\n", name)
	}
	for _, name := range m.TooDeep {
		fmt.Fprintf(tty.Err, "NOT IN THIS BACKUP, because it's nested too deeply to be restored: the folder %s\n", name)
	}
	if c.File == "-" {
		return nil
	}
	if flags.JSON {
		return plainjson.NewEncoder(tty.Out).Encode(m)
	}
	var bytes int64
	for _, file := range m.Files {
		bytes += file.Size
	}
	fmt.Fprintf(tty.Out, "%s contains %d files (%d bytes). Parley has read it back, so it can be restored. It doesn't contain settings, tokens or secrets.\n", c.File, len(m.Files), bytes)
	return nil
}

// write writes the backup to the file, or to out, and shows how far it is.
func (c backupCmd) write(ctx context.Context, source backup.Source, bar *terminal.Bar, out io.Writer) (m backup.Manifest, err error) {
	defer bar.Clear()
	point := crash.Points()
	source.Progress = func(p backup.Progress) {
		const mb = 1e6
		far := fmt.Sprintf("%.0f of %.0f MB", float64(p.Done)/mb, float64(p.Of)/mb)
		steps := backup.Steps()
		bar.Show(partDone(slices.Index(steps, p.Step), len(steps), p.Done, p.Of), string(p.Step), far)
		if point != nil {
			point("backup:" + string(p.Step))
		}
	}
	if c.File == "-" {
		m, err = writeChecked(ctx, source, out)
	} else {
		m, err = backup.WriteFile(ctx, source, c.File, homedb.Check)
	}
	switch {
	case err != nil && ctx.Err() != nil && c.File == "-":
		return m, fmt.Errorf(textPipeInterrupted, errInterrupted)
	case err != nil && ctx.Err() != nil:
		return m, fmt.Errorf(textBackupInterrupted, errInterrupted)
	case err != nil:
		return m, fmt.Errorf("write the backup: %w", err)
	}
	return m, nil
}

// writeChecked writes a backup to an output that cannot be read back, such as a pipe; on the way it
// checks the same bytes like a restore would.
func writeChecked(ctx context.Context, source backup.Source, out io.Writer) (backup.Manifest, error) {
	from, to := io.Pipe()
	checked := make(chan error, 1)
	go func() {
		err := backup.Check(ctx, from, source.Home, homedb.Check)
		checked <- errors.Join(err, from.CloseWithError(err))
	}()
	m, err := backup.Write(ctx, source, io.MultiWriter(out, to))
	err = errors.Join(err, to.CloseWithError(err))
	if wrong := <-checked; err == nil {
		err = wrong
	}
	return m, err
}

// keptElsewhere names, in words, the data that is not in the home and therefore not in a backup,
// and where that data is.
func keptElsewhere(c *config.Config) []string {
	var parts []string
	if c.Store.URL != "" {
		parts = append(parts, "the conversations, pairings and sends in PostgreSQL at "+home.StoreName(string(c.Store.URL)))
	}
	if c.Bus.URL != "" {
		parts = append(parts, "the mail in Redis at "+home.BusName(c))
	}
	return parts
}
