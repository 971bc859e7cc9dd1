package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"golang.org/x/term"

	"parley/cmd/parley/config"
	"parley/cmd/parley/onboard"
	"parley/cmd/parley/terminal"
)

// serviceFor completes a systemd service with this program and the home, and returns it with the path of its unit. It
// returns an error unless this is Linux.
func serviceFor(flags *globalFlags, s onboard.Service) (_ onboard.Service, path string, err error) {
	if runtime.GOOS != "linux" {
		return s, "", errors.New("--install and --uninstall only work with systemd, on Linux")
	}
	if s.Home, err = config.HomeDir(config.Options{Home: flags.Home}); err != nil {
		return s, "", err
	}
	if s.Program, err = os.Executable(); err != nil {
		return s, "", fmt.Errorf("find this program: %w", err)
	}
	s.Root = os.Geteuid() == 0
	path, err = s.Path(os.Getenv)
	return s, path, err
}

// installService writes the unit of a service, and starts the service if the person wants that.
func installService(ctx context.Context, s onboard.Service, path string, tty terminal.Terminal, start, yes bool) error {
	if err := s.ReadVariables(os.Getenv); err != nil {
		return err
	}
	err := s.Write(path, yes)
	if errors.Is(err, os.ErrExist) {
		if err := confirm(tty, false, path+textReplace); err != nil {
			return err
		}
		err = s.Write(path, true)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(tty.Out, "Written: %s\n", path)
	if s.HasVariables() {
		fmt.Fprintf(tty.Out, textVariables, s.EnvironmentFile())
	}
	if !start && term.IsTerminal(int(tty.In.Fd())) {
		start = confirm(tty, false, textStartNow) == nil
	}
	if !start {
		fmt.Fprintf(tty.Out, textToStart, strings.Join(s.StartCommands(), "\n  "))
	}
	for _, command := range s.StartCommands() {
		if !start {
			break
		}
		if err := runSystem(ctx, tty, command); err != nil {
			return err
		}
	}
	fmt.Fprintf(tty.Out, textItsLog, s.LogCommand())
	return nil
}

// uninstallService stops a service and removes its unit.
func uninstallService(ctx context.Context, flags *globalFlags, of onboard.Service, tty terminal.Terminal) error {
	s, path, err := serviceFor(flags, of)
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("nothing is installed: %w", err)
	}
	if err := runSystem(ctx, tty, s.StopCommand()); err != nil {
		return err
	}
	// The unit is removed last: as long as it exists, the person can run --uninstall again.
	for _, file := range []string{s.EnvironmentFile(), path} {
		if err := os.Remove(file); err == nil {
			fmt.Fprintf(tty.Out, "Removed: %s\n", file)
		} else if !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove the service: %w", err)
		}
	}
	fmt.Fprintf(tty.Out, textStillThere, s.Home)
	return nil
}

// runSystem runs one of systemd's commands, split at its spaces, and shows its output on standard error.
func runSystem(ctx context.Context, tty terminal.Terminal, command string) error {
	words := strings.Fields(command)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Stdout, cmd.Stderr = tty.Err, tty.Err
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	return nil
}
