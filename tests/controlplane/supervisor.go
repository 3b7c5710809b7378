package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// pollInterval is the pause between two looks at a health endpoint.
	pollInterval = 50 * time.Millisecond
	// stopGrace is how long `stop` lets a component end by itself. kube-apiserver would wait a minute for its watches to end.
	stopGrace = 3 * time.Second
	// tailBytes is how much of a component's log is shown when it fails.
	tailBytes = 4 << 10
)

// process is a component that runs.
type process struct {
	command *exec.Cmd
	done    chan struct{} // closed when it has ended
	wanted  bool          // that it ends
}

// supervisor starts, stops and watches the components in dir. It is used from one locked thread only: the kernel's promise to kill
// the children is tied to the thread that started them, so that thread has to live as long as the process.
type supervisor struct {
	dir        string
	components []*component
	running    map[string]*process
	exits      chan string // names of components that have ended
	client     *http.Client
	timeout    time.Duration
}

func newSupervisor(dir string, components []*component, timeout time.Duration) (*supervisor, error) {
	pki := filepath.Join(dir, "pki")
	ca, err := os.ReadFile(filepath.Join(pki, "ca.crt"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	admin, err := tls.LoadX509KeyPair(filepath.Join(pki, "admin.crt"), filepath.Join(pki, "admin.key"))
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{admin}},
		DisableKeepAlives: true, // each look is at the process that listens now
	}
	return &supervisor{
		dir: dir, components: components, running: map[string]*process{}, exits: make(chan string, 64),
		client: &http.Client{Transport: transport, Timeout: 2 * time.Second}, timeout: timeout,
	}, nil
}

func (s *supervisor) component(name string) (*component, error) {
	var names []string
	for _, c := range s.components {
		if c.name == name {
			return c, nil
		}
		names = append(names, c.name)
	}
	return nil, fmt.Errorf("no component is called %q; there are %s", name, strings.Join(names, ", "))
}

func (s *supervisor) log(name string) string { return filepath.Join(s.dir, "logs", name+".log") }

// start starts a component and does not wait for it.
func (s *supervisor) start(c *component) error {
	if s.running[c.name] != nil {
		return fmt.Errorf("%s runs already", c.name)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(s.log(c.name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	command := exec.Command(self, append([]string{c.name}, c.args...)...)
	command.Stdout, command.Stderr = log, log
	command.Dir = s.dir
	command.Env = append(os.Environ(), "HOME="+s.dir) // nobody's own configuration files are read
	command.SysProcAttr = childAttributes()
	if err := command.Start(); err != nil {
		return err
	}
	p := &process{command: command, done: make(chan struct{})}
	s.running[c.name] = p
	go func() {
		_ = command.Wait() // how it ended is in command.ProcessState
		close(p.done)
		s.exits <- c.name
	}()
	return nil
}

// ready waits until a started component says that it is well.
func (s *supervisor) ready(ctx context.Context, c *component) error {
	p := s.running[c.name]
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("not ready after %s", s.timeout))
	defer cancel()
	var last error
	for {
		if last = s.probe(ctx, c); last == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended before it was ready: %s\n%s", c.name, p.command.ProcessState, s.tail(c.name))
		case <-ctx.Done():
			return fmt.Errorf("%s: %w (%v)\n%s", c.name, context.Cause(ctx), last, s.tail(c.name))
		case <-time.After(pollInterval):
		}
	}
}

func (s *supervisor) probe(ctx context.Context, c *component) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.health, nil)
	if err != nil {
		return err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 2048))
		return fmt.Errorf("%s answers %s: %s", c.health, response.Status, body)
	}
	return nil
}

// stop ends a component as an orderly shutdown would; after the grace period it is killed.
func (s *supervisor) stop(name string) error {
	return s.end(name, syscall.SIGTERM)
}

// kill ends a component as a crash would.
func (s *supervisor) kill(name string) error {
	return s.end(name, syscall.SIGKILL)
}

func (s *supervisor) end(name string, signal syscall.Signal) error {
	p, err := s.find(name)
	if err != nil {
		return err
	}
	p.wanted = true
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.done:
	case <-time.After(stopGrace):
		_ = p.command.Process.Kill() // fails only if it has just ended
		<-p.done
	}
	delete(s.running, name)
	return nil
}

// signal sends a signal to a component that goes on running.
func (s *supervisor) signal(name string, signal syscall.Signal) error {
	p, err := s.find(name)
	if err != nil {
		return err
	}
	return p.command.Process.Signal(signal)
}

func (s *supervisor) find(name string) (*process, error) {
	if _, err := s.component(name); err != nil {
		return nil, err
	}
	p := s.running[name]
	if p == nil {
		return nil, fmt.Errorf("%s does not run", name)
	}
	return p, nil
}

// ended says what is wrong, if something is, after a component's end was reported.
func (s *supervisor) ended(name string) error {
	p := s.running[name]
	if p == nil || p.wanted {
		return nil
	}
	select {
	case <-p.done:
		return fmt.Errorf("%s ended by itself: %s\n%s", name, p.command.ProcessState, s.tail(name))
	default:
		return nil // the report is about an instance before this one
	}
}

// killAll leaves no child behind. Killing is enough: what etcd has acknowledged it has written.
func (s *supervisor) killAll() {
	for _, p := range s.running {
		p.wanted = true
		_ = p.command.Process.Kill() // fails only if it has ended
	}
	for _, p := range s.running {
		<-p.done
	}
}

// tail is the end of a component's log.
func (s *supervisor) tail(name string) string {
	log, err := os.Open(s.log(name))
	if err != nil {
		return err.Error()
	}
	defer log.Close()
	if size, err := log.Seek(0, io.SeekEnd); err == nil {
		_, _ = log.Seek(max(0, size-tailBytes), io.SeekStart)
	}
	text, err := io.ReadAll(log)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("--- the end of %s\n%s", s.log(name), text)
}
