"""What people look at: tables, figures and pages made from results."""
