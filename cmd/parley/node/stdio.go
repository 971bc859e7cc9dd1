package node

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"parley/bus/sqlitebus"
	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/tools/nodes/device"
	"parley/tools/nodes/ssh"
	"parley/tools/nodes/wire"
	"parley/tools/plainjson"
)

// stdioFolder has what a node keeps that servers start over ssh: a socket, and a journal for each name under which each fleet knows it.
const stdioFolder = "stdio"

const (
	greetingTimeout = time.Minute            // for the first line of a server
	lockWait        = 5 * time.Second        // for a process of the same home that is about to end
	lockRetry       = 100 * time.Millisecond // between two attempts
)

// Stdio runs the node of a home for the server that has started it over ssh, and is at the other end of the standard input and
// output. The home need not have joined a server. When the link ends, Stdio goes on until the running calls have ended. If the
// server links again meanwhile, the new process passes all on to this one. Errors are those of Run.
func Stdio(ctx context.Context, c *config.Config, release string, log *slog.Logger) error {
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE) // nobody may read what is written anymore, and calls run on
	defer signal.Stop(pipes)
	conn, err := ssh.Standard()
	if err != nil {
		return newSetupError(textNoPipes, err)
	}
	defer func() { _ = conn.Close() }() // nothing is lost that was not lost before
	folder := filepath.Join(c.Home, stdioFolder)
	for late := time.Now().Add(lockWait); ; {
		unlock, err := lock(c.Home)
		if err == nil {
			defer unlock()
			return serveStdio(ctx, c, release, conn, folder, log)
		}
		if _, busy := errors.AsType[*sqlitebus.InUseError](err); !busy {
			return err
		}
		if passed, failed := relay(ctx, conn, folder); passed {
			return failed
		}
		if time.Now().After(late) {
			return err
		}
		select {
		case <-time.After(lockRetry):
		case <-ctx.Done():
			return nil
		}
	}
}

// Check writes what Stdio would say first, and begins nothing.
func Check(ctx context.Context, c *config.Config, release string, out io.Writer, log *slog.Logger) error {
	n, equipment, err := prepare(ctx, c, release, log)
	if err != nil {
		return err
	}
	defer equipment.close()
	key, err := readKey(c.Home)
	if err == nil && key == nil { // it is made at the first link
		_, key, err = ed25519.GenerateKey(rand.Reader)
	}
	if err != nil {
		return err
	}
	return plainjson.NewEncoder(out).Encode(ssh.HelloOf(publicOf(key), n.Link.Offer.Release, n.Link.Offer.Capabilities))
}

func publicOf(key ed25519.PrivateKey) ed25519.PublicKey {
	return key.Public().(ed25519.PublicKey) //nolint:forcetypeassert // so it is documented
}

// serveStdio runs the node, first for the server at the other end of conn. This process has the home's lock.
func serveStdio(ctx context.Context, c *config.Config, release string, conn net.Conn, folder string, log *slog.Logger) error {
	key, err := makeKey(c.Home)
	if err != nil {
		return err
	}
	n, equipment, err := prepare(ctx, c, release, log)
	if err != nil {
		return err
	}
	defer equipment.close()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	others, err := home.ListenSocket(folder, log)
	if err != nil {
		return err
	}
	defer func() { _ = others.Close() }() // below, unless something fails
	hello := ssh.HelloOf(publicOf(key), n.Link.Offer.Release, n.Link.Offer.Capabilities)
	server, err := ssh.SendHello(conn, hello, greetingTimeout)
	if err == nil {
		err = ssh.SendReady(conn, "")
	}
	if err != nil {
		return fmt.Errorf("meet the server: %w", err)
	}
	n.Link = wire.Node{Server: "ssh", ServerKey: server.Key, Name: server.Name, Key: key, Offer: n.Link.Offer}
	n.Journal = filepath.Join(folder, journalOf(server))
	h := host{listener: others, hello: hello, server: server, conns: make(chan net.Conn), log: log}
	ctx, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { h.accept(ctx) })
	err = n.Serve(ctx, conn, h.conns)
	stop()
	_ = others.Close() // so accept ends
	beside.Wait()
	if damaged, ok := errors.AsType[*device.DamagedError](err); ok {
		return newSetupError(textDamaged, damaged)
	}
	return err
}

// journalOf returns the name of the journal's folder. Another fleet, or the same one under another name, must not get outcomes that
// are not of its calls.
func journalOf(server ssh.Greeting) string {
	sum := sha256.Sum256(append([]byte(server.Name+"\x00"), server.Key...))
	return journalFolder + "-" + hex.EncodeToString(sum[:8])
}

// A host takes the connections of later processes of the home.
type host struct {
	listener net.Listener
	hello    ssh.Hello
	server   ssh.Greeting // the only one that may link
	conns    chan net.Conn
	log      *slog.Logger
}

// accept takes connections until the listener is closed, and hands them over until ctx ends.
func (h host) accept(ctx context.Context) {
	var meeting sync.WaitGroup
	defer meeting.Wait()
	for {
		conn, err := h.listener.Accept()
		if err != nil {
			return
		}
		meeting.Go(func() {
			stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
			err := h.greet(conn)
			if !stop() || err != nil {
				_ = conn.Close() // whoever connects again finds the home free, or this process
				h.log.Info("a connection is not used", slog.Any("error", err))
				return
			}
			select {
			case h.conns <- conn:
			case <-ctx.Done():
				_ = conn.Close() // as above
			}
		})
	}
}

// greet lets only that server begin a link for which the node runs.
func (h host) greet(conn net.Conn) error {
	server, err := ssh.SendHello(conn, h.hello, greetingTimeout)
	if err != nil {
		return err
	}
	if server.Name != h.server.Name || !bytes.Equal(server.Key, h.server.Key) {
		return errors.Join(errOther, ssh.SendReady(conn, textOther))
	}
	return ssh.SendReady(conn, "")
}

var errOther = errors.New("it is of another server, or for another target")

// relay passes on what comes over conn to the process that has the home's lock, and the reverse, until one of them ends. It returns
// false if that process takes no connection.
func relay(ctx context.Context, conn net.Conn, folder string) (passed bool, err error) {
	there, err := home.DialSocket(ctx, folder)
	if err != nil {
		return false, err
	}
	defer func() { _ = there.Close() }() // nothing is lost that was not lost before
	stop := context.AfterFunc(ctx, func() { _ = there.Close() })
	defer stop()
	first := make([]byte, 4<<10)
	if err := there.SetReadDeadline(time.Now().Add(greetingTimeout)); err != nil { // it may stand still
		return false, err
	}
	n, err := there.Read(first) // it speaks first, unless it is about to end
	if n == 0 {
		return false, err
	}
	if err := there.SetReadDeadline(time.Time{}); err != nil {
		return false, err
	}
	if _, err := conn.Write(first[:n]); err != nil {
		return true, fmt.Errorf("pass on what the node says: %w", err)
	}
	pass := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // either end may close at any time
		_ = errors.Join(to.Close(), from.Close())
	}
	var beside sync.WaitGroup
	beside.Go(func() { pass(there, conn) })
	pass(conn, there)
	beside.Wait()
	return true, nil
}
