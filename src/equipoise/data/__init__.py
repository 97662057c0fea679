"""What flows: Records with their Roles, Cells counted from them, Hierarchies, Tables, and the engines they live on."""
