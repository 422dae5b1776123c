"""What files of all formats share: sources with lines, XML, links and their inertias, reports."""
