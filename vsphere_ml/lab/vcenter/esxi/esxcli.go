package esxi

import (
	"errors"
	"fmt"
	"strings"
)

// esxcli runs `esxcli [--formatter=csv|keyvalue] NAMESPACE… COMMAND [options]`.
func esxcli(p *process) error {
	formatter, words := "", p.args[1:]
	for len(words) > 0 && strings.HasPrefix(words[0], "-") {
		value, ok := strings.CutPrefix(words[0], "--formatter=")
		if !ok || !(value == "csv" || value == "keyvalue") {
			return p.fail(1, "Error: Invalid option %s", words[0])
		}
		formatter, words = value, words[1:]
	}
	command, rest, ok := lookup(p.host.Commands(), words)
	if !ok {
		return p.fail(1, "Error: Unknown command or namespace %s", strings.Join(words, " "))
	}
	arguments, err := command.parse(rest)
	if err != nil {
		return p.fail(1, "Error: %v\n\n%s", err, command.usage())
	}
	rows, err := command.Run(arguments)
	if err != nil {
		return p.fail(1, "%v", err)
	}
	p.print(command.write(formatter, rows))
	return nil
}

// lookup finds the command whose words come first.
func lookup(commands []Command, words []string) (Command, []string, bool) {
	for _, command := range commands {
		path := append(strings.Fields(command.Namespace), command.Name)
		if len(words) >= len(path) && strings.EqualFold(strings.Join(path, " "), strings.Join(words[:len(path)], " ")) {
			return command, words[len(path):], true
		}
	}
	return Command{}, nil, false
}

// parse reads -s NAME, --setting NAME and --setting=NAME.
func (c Command) parse(words []string) (map[string]string, error) {
	arguments := map[string]string{}
	for len(words) > 0 {
		name, value, joined := strings.Cut(words[0], "=")
		option, ok := c.option(name)
		if !ok {
			return nil, fmt.Errorf("Invalid option %s", name) //nolint:staticcheck // esxcli's own words
		}
		words = words[1:]
		if !joined {
			if len(words) == 0 {
				return nil, fmt.Errorf("Missing value for option -%s|--%s", option.Short, option.Long) //nolint:staticcheck // as above
			}
			value, words = words[0], words[1:]
		}
		arguments[option.Long] = value
	}
	var missing []error
	for _, option := range c.Options {
		if _, given := arguments[option.Long]; option.Required && !given {
			missing = append(missing, fmt.Errorf("Missing required parameter -%s|--%s", option.Short, option.Long)) //nolint:staticcheck // as above
		}
	}
	return arguments, errors.Join(missing...)
}

func (c Command) option(word string) (Option, bool) {
	for _, option := range c.Options {
		if word == "-"+option.Short || word == "--"+option.Long {
			return option, true
		}
	}
	return Option{}, false
}

func (c Command) usage() string {
	lines := []string{
		fmt.Sprintf("Usage: esxcli %s %s [cmd options]", c.Namespace, c.Name), "",
		"Description: ", fmt.Sprintf("  %-21s %s", c.Name, c.Help), "", "Cmd options:",
	}
	for _, option := range c.Options {
		required := ""
		if option.Required {
			required = " (required)"
		}
		lines = append(lines, fmt.Sprintf("  -%s|--%s=<str>  %s%s", option.Short, option.Long, option.Help, required))
	}
	return strings.Join(lines, "\n")
}
