"""Records with their Roles, Cells counted from them, Hierarchies, Tables, and the engines that hold them."""
