package esxi

import (
	"fmt"
	"slices"
	"strings"
)

func field(title string) string { return strings.ReplaceAll(title, " ", "") }

// write is the rows as esxcli prints them. The table of `system settings kernel list`, the fields of `graphics host
// get`, the records of `graphics device list` and the bare word of `system maintenanceMode get` follow outputs that
// people printed of ESXi 7 and 8; the other commands follow those.
func (c Command) write(formatter string, rows []Row) string {
	switch {
	case c.Layout == Silent:
		return ""
	case formatter == "csv":
		return c.csv(rows)
	case formatter == "keyvalue":
		return c.keyvalue(rows)
	case c.Layout == Table:
		return c.table(rows)
	}
	var out strings.Builder
	for i, row := range rows {
		switch c.Layout {
		case Bare:
			fmt.Fprintln(&out, row[field(c.Titles[0])])
			continue
		case Records:
			if i > 0 {
				fmt.Fprintln(&out)
			}
			fmt.Fprintln(&out, row[field(c.Titles[0])])
		}
		for _, title := range c.Titles {
			fmt.Fprintf(&out, "   %s: %s\n", title, row[field(title)])
		}
	}
	return out.String()
}

func (c Command) table(rows []Row) string {
	widths := make([]int, len(c.Titles))
	for i, title := range c.Titles {
		widths[i] = len(title)
		for _, row := range rows {
			widths[i] = max(widths[i], len(row[field(title)]))
		}
	}
	var out strings.Builder
	write := func(cell func(i int) string) {
		var line strings.Builder
		for i := range c.Titles {
			fmt.Fprintf(&line, "%-*s  ", widths[i], cell(i))
		}
		fmt.Fprintln(&out, strings.TrimRight(line.String(), " "))
	}
	write(func(i int) string { return c.Titles[i] })
	write(func(i int) string { return strings.Repeat("-", widths[i]) })
	for _, row := range rows {
		write(func(i int) string { return row[field(c.Titles[i])] })
	}
	return out.String()
}

// csv has the fields in the order of the alphabet, and a comma after the last.
func (c Command) csv(rows []Row) string {
	fields := c.fields()
	var out strings.Builder
	fmt.Fprintln(&out, strings.Join(fields, ",")+",")
	for _, row := range rows {
		for _, name := range fields {
			fmt.Fprint(&out, quoted(row[name])+",")
		}
		fmt.Fprintln(&out)
	}
	return out.String()
}

func quoted(value string) string {
	if strings.ContainsAny(value, ",\"\n") {
		return `"` + strings.ReplaceAll(value, `"`, `""`) + `"`
	}
	return value
}

func (c Command) keyvalue(rows []Row) string {
	var out strings.Builder
	for i, row := range rows {
		for _, name := range c.fields() {
			prefix := ""
			if c.Layout == Table || c.Layout == Records {
				prefix = fmt.Sprintf("Structure[%d].", i)
			}
			fmt.Fprintf(&out, "%s%s=%s\n", prefix, name, row[name])
		}
	}
	return out.String()
}

func (c Command) fields() []string {
	fields := make([]string, len(c.Titles))
	for i, title := range c.Titles {
		fields[i] = field(title)
	}
	slices.Sort(fields)
	return fields
}
